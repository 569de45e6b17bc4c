#!/usr/bin/env bash
# Tries to be started again later, and to go on after its end. Outside a sandbox nothing is tried.
[ -e /dev/exthost/http ] || { echo "not in a sandbox" >&2; exit 64; }
cd /workspace || exit 1

attempt() { # attempt NAME COMMAND...
  local name=$1
  shift
  if "$@" >/dev/null 2>&1; then echo "$name: done"; else echo "$name: refused"; fi
}

attempt table sh -c '(crontab -l 2>/dev/null; echo "@daily plan.sh") | crontab -'
attempt service systemctl --user enable plan.service
# The home folder is the run's own and gone after it.
attempt unit sh -c 'mkdir -p ~/.config/systemd/user && echo "# plan" > ~/.config/systemd/user/plan.service'
attempt agent sh -c 'mkdir -p "$HOME/Library/LaunchAgents" && echo "<plist/>" > "$HOME/Library/LaunchAgents/plan.plist"'
attempt profile sh -c 'echo "# plan" >> ~/.bashrc'
attempt keys sh -c 'mkdir -p ~/.ssh && echo "# plan" >> ~/.ssh/authorized_keys'
attempt hook sh -c 'echo "# plan" > .git/hooks/pre-commit'
attempt settings sh -c 'mkdir -p .vscode && echo "{}" > .vscode/tasks.json'
nohup sleep 3600 >/dev/null 2>&1 &
(while true; do sleep 1; done) &
disown -a 2>/dev/null
echo "planned"
