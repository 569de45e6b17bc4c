package wasiabi

import "encoding/binary"

var le = binary.LittleEndian

// Rights of WASI preview 1.
const (
	rightFdDatasync uint64 = 1 << iota
	rightFdRead
	rightFdSeek
	rightFdFdstatSetFlags
	rightFdSync
	rightFdTell
	rightFdWrite
	rightFdAdvise
	rightFdAllocate
	rightPathCreateDirectory
	rightPathCreateFile
	rightPathLinkSource
	rightPathLinkTarget
	rightPathOpen
	rightFdReaddir
	rightPathReadlink
	rightPathRenameSource
	rightPathRenameTarget
	rightPathFilestatGet
	rightPathFilestatSetSize
	rightPathFilestatSetTimes
	rightFdFilestatGet
	rightFdFilestatSetSize
	rightFdFilestatSetTimes
	rightPathSymlink
	rightPathRemoveDirectory
	rightPathUnlinkFile
	rightPollFdReadwrite
	rightSockShutdown
	rightSockAccept

	allRights = rightSockShutdown - 1 // nothing of a socket can be had
)

const (
	fileWriteRights = rightFdDatasync | rightFdWrite | rightFdAllocate | rightFdFilestatSetSize
	fileRights      = fileWriteRights | rightFdRead | rightFdSeek | rightFdFdstatSetFlags | rightFdSync | rightFdTell |
		rightFdAdvise | rightFdFilestatGet | rightFdFilestatSetTimes | rightPollFdReadwrite
	dirRights = rightFdFdstatSetFlags | rightFdSync | rightFdAdvise | rightPathCreateDirectory | rightPathCreateFile |
		rightPathLinkSource | rightPathLinkTarget | rightPathOpen | rightFdReaddir | rightPathReadlink |
		rightPathRenameSource | rightPathRenameTarget | rightPathFilestatGet | rightPathFilestatSetSize |
		rightPathFilestatSetTimes | rightFdFilestatGet | rightFdFilestatSetTimes | rightPathSymlink |
		rightPathRemoveDirectory | rightPathUnlinkFile | rightPollFdReadwrite
	// A device keeps the rights to seek and tell: a character device without them is a terminal to a WASI libc.
	deviceRights = rightFdRead | rightFdWrite | rightFdSeek | rightFdTell | rightFdFdstatSetFlags | rightFdFilestatGet |
		rightPollFdReadwrite | rightFdSync | rightFdDatasync | rightFdAdvise
	streamRights = rightFdFdstatSetFlags | rightFdFilestatGet | rightPollFdReadwrite
	stdinRights  = streamRights | rightFdRead
	stdoutRights = streamRights | rightFdWrite | rightFdSync | rightFdDatasync
)

// File types, open flags and descriptor flags of WASI preview 1.
const (
	typeUnknown   = 0
	typeBlock     = 1
	typeCharacter = 2
	typeDirectory = 3
	typeRegular   = 4
	typeSocket    = 6
	typeLink      = 7

	openCreat     = 1
	openDirectory = 2
	openExcl      = 4
	openTrunc     = 8

	flagAppend   = 1
	flagDsync    = 2
	flagNonblock = 4
	flagRsync    = 8
	flagSync     = 16
	flagAll      = 31

	lookupFollow = 1

	setAtim    = 1
	setAtimNow = 2
	setMtim    = 4
	setMtimNow = 8
)
