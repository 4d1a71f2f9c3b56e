import { oneOf } from "../../flags.ts";
import type { Session } from "../../session.ts";

/** The scripts only ask: `vendorctl complete` knows every command, so they never go stale. */
const SCRIPTS = {
  bash: `_vendorctl() {
  local IFS=$'\\n'
  local words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
  COMPREPLY=($(vendorctl complete -- "\${words[@]}" 2>/dev/null))
}
complete -o default -F _vendorctl vendorctl
`,
  zsh: `#compdef vendorctl
_vendorctl() {
  local -a found
  found=(\${(f)"$(vendorctl complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  compadd -a found
}
compdef _vendorctl vendorctl
`,
  fish: `function __vendorctl
  vendorctl complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null
end
complete -c vendorctl -f -a '(__vendorctl)'
`,
} as const;

export async function completion(session: Session, _options: object, shell: string): Promise<void> {
  const known = oneOf("the shell", Object.keys(SCRIPTS) as (keyof typeof SCRIPTS)[])(shell);
  session.out(SCRIPTS[known]);
}
