package policy

import (
	"slices"
	"strings"
)

// forbiddenEnv are variables that never come from a host or a policy: they choose what code is loaded, where programs
// are found or where traffic goes. "*" at an end is a wildcard; names are compared in capitals.
var forbiddenEnv = []string{
	"PATH", "CDPATH", "FPATH", "MANPATH", "INFOPATH", "PATHEXT", "CLASSPATH", "LIBPATH", "SHLIB_PATH", "MODULE_PATH",
	"LD_*", "DYLD_*", "GCONV_PATH", "LOCPATH", "NLSPATH", "MALLOC_*", "GLIBC_TUNABLES",
	"NODE_OPTIONS", "NODE_PATH", "NODE_REPL_*", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED", "NPM_CONFIG_*", "BUN_*",
	"PYTHON*", "PIP_*", "PERL5LIB", "PERL5OPT", "PERLLIB", "PERL5DB", "RUBYLIB", "RUBYOPT", "GEM_PATH", "GEM_HOME", "BUNDLE_*",
	"LUA_PATH*", "LUA_CPATH*", "LUA_INIT*", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "GOPATH", "GOFLAGS", "GODEBUG", "GOROOT",
	"BASH_ENV", "BASH_FUNC_*", "ENV", "IFS", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "ZDOTDIR",
	"GIT_*_COMMAND", "GIT_SSH", "GIT_CONFIG*", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_ASKPASS", "SSH_ASKPASS", "SSH_AUTH_SOCK",
	"EDITOR", "VISUAL", "PAGER", "BROWSER", "LESSOPEN", "LESSCLOSE",
	"*_PROXY", "EXTHOST_*",
}

// secretWords in a name make it look like a credential. Such a name needs the exact name in env.pass.
var secretWords = []string{"TOKEN", "KEY", "SECRET", "PASS", "PWD", "CRED", "AUTH", "COOKIE", "PRIVATE", "SIGNATURE", "BEARER", "JWT", "DSN", "DATABASE_URL", "CONNECTION_STRING", "WEBHOOK"}

// EnvForbidden reports whether name may never be given to a guest, whatever a policy says.
func EnvForbidden(name string) bool {
	up := strings.ToUpper(name)
	return slices.ContainsFunc(forbiddenEnv, func(p string) bool { return wildcard(p, up) })
}

// EnvLooksSecret reports whether name looks like the name of a credential.
func EnvLooksSecret(name string) bool {
	up := strings.ToUpper(name)
	if up == "PWD" || up == "OLDPWD" {
		return false
	}
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(up, w) })
}

// forbiddenEnvPattern reports whether a pattern of env.pass names nothing but forbidden variables, as PYTHON* does.
func forbiddenEnvPattern(pattern string) bool {
	prefix, wild := strings.CutSuffix(strings.ToUpper(pattern), "*")
	if !wild {
		return EnvForbidden(pattern)
	}
	return slices.ContainsFunc(forbiddenEnv, func(p string) bool {
		head, ok := strings.CutSuffix(p, "*")
		return ok && strings.HasPrefix(prefix, head) && head != ""
	})
}

// passMatches reports whether one line of env.pass covers name.
func passMatches(pattern, name string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	if !wild {
		return pattern == name
	}
	return strings.HasPrefix(name, prefix) && !EnvLooksSecret(name)
}

func (s *EnvSection) pass(name string) (EnvPass, bool) {
	if s == nil {
		return EnvPass{}, false
	}
	i := slices.IndexFunc(s.Pass, func(p EnvPass) bool { return passMatches(p.Pattern, name) })
	if i < 0 {
		return EnvPass{}, false
	}
	return s.Pass[i], true
}

func (s *EnvSection) set(name string) (EnvSet, bool) {
	if s == nil {
		return EnvSet{}, false
	}
	i, ok := slices.BinarySearchFunc(s.Set, name, func(e EnvSet, n string) int { return strings.Compare(e.Name, n) })
	if !ok {
		return EnvSet{}, false
	}
	return s.Set[i], true
}
