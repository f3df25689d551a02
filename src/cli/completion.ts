// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell variables have this syntax
// Completion scripts for shells, generated from the commands.
import { type Command, visibleOptions } from './command.ts'

export const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

/** The words that may follow each sequence of words. */
function nextWords(commands: readonly Command[]): Map<string, Set<string>> {
  const after = new Map<string, Set<string>>()
  const add = (words: string, next: string) => {
    const known = after.get(words) ?? new Set()
    after.set(words, known.add(next))
  }
  for (const command of commands) {
    const { name } = command
    const words = name.split(' ')
    for (const [index, word] of words.entries()) add(words.slice(0, index).join(' '), word)
    for (const [option] of visibleOptions(command)) add(name, `--${option}`)
  }
  add('', 'help')
  for (const shell of shells) add('completion', shell)
  return after
}

export const completionFor: Record<Shell, (commands: readonly Command[]) => string> = {
  bash: (commands) =>
    [
      '# adit: completion for bash. Load it with: source <(adit completion bash)',
      '_adit() {',
      '  local words="" word',
      '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do [[ $word == -* ]] || words+="${words:+ }$word"; ' +
        'done',
      '  local next=""',
      '  while [[ -z $next ]]; do',
      '    case "$words" in',
      ...cases(commands, (words, next) => `      ${quoted(words)}) next=${quoted(next)} ;;`),
      '    esac',
      '    [[ -n $next || -z $words ]] && break',
      '    [[ $words == *" "* ]] && words="${words% *}" || words=""',
      '  done',
      '  COMPREPLY=($(compgen -W "$next" -- "${COMP_WORDS[COMP_CWORD]}"))',
      '}',
      'complete -F _adit adit',
    ].join('\n'),
  zsh: (commands) =>
    [
      '#compdef adit',
      '# adit: completion for zsh. Load it with: source <(adit completion zsh)',
      '_adit() {',
      '  local words_so_far="" word next=""',
      '  for word in "${(@)words[2,CURRENT-1]}"; do [[ $word == -* ]] || words_so_far+="${words_so_far:+ ' +
        '}$word"; done',
      '  while [[ -z $next ]]; do',
      '    case "$words_so_far" in',
      ...cases(commands, (words, next) => `      ${quoted(words)}) next=${quoted(next)} ;;`),
      '    esac',
      '    [[ -n $next || -z $words_so_far ]] && break',
      '    [[ $words_so_far == *" "* ]] && words_so_far="${words_so_far% *}" || words_so_far=""',
      '  done',
      '  compadd -- ${=next}',
      '}',
      'compdef _adit adit',
    ].join('\n'),
  fish: (commands) =>
    [
      '# adit: completion for fish. Load it with: adit completion fish | source',
      'function __adit_next',
      "  set -l words (string match -v -- '-*' (commandline -opc)[2..])",
      '  while true',
      '    switch "$words"',
      ...cases(
        commands,
        (words, next) => `      case ${quoted(words)}; string split -- " " ${quoted(next)}; return`,
      ),
      '    end',
      '    set -e words[-1]',
      '  end',
      'end',
      "complete -c adit -f -a '(__adit_next)'",
    ].join('\n'),
}

const cases = (commands: readonly Command[], line: (words: string, next: string) => string) =>
  [...nextWords(commands)].map(([words, next]) => line(words, [...next].join(' ')))

const quoted = (text: string) => `"${text}"`
