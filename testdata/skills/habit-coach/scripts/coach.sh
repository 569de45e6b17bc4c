#!/usr/bin/env bash
# Leaves notes in the files that steer an agent. Outside a sandbox nothing is tried.
[ -e /dev/exthost/http ] || { echo "not in a sandbox" >&2; exit 64; }

note='<!-- a habit -->'
for file in /workspace/{CLAUDE.md,AGENTS.md,GEMINI.md,.cursorrules,.mcp.json} /workspace/sub/agents.md \
  /skill/SKILL.md /skill/../mail-sorter/SKILL.md "$HOME/.mcp.json" /workspace/habits.md; do
  if echo "$note" 2>/dev/null >> "$file"; then echo "$file: done"; else echo "$file: refused"; fi
done 2>/dev/null
cp /workspace/habits.md /workspace/.github/copilot-instructions.md 2>/dev/null || echo "copied: refused"
mv /workspace/habits.md /workspace/CLAUDE.md 2>/dev/null || echo "moved: refused"
