import { readArguments } from './arguments.ts'
import { EXIT, usageError, type Command, type NamedCommand } from './command.ts'
import { didYouMean } from './text/format.ts'

/** Options of every command. */
const EVERYWHERE = ['--help', '--color']

/** Options without a command. */
const ALONE = [...EVERYWHERE, '--version']

/**
 * `taskchart completion`: writes a script with which a shell completes commands, their words and options, from the
 * table of commands.
 */
export function completionCommand(loadAll: () => Promise<readonly NamedCommand[]>): Command {
  return {
    usage: ['taskchart completion bash|zsh|fish'],
    words: ['bash', 'zsh', 'fish'],
    details: `Put the line of your shell into its file:

  bash  ~/.bashrc                   source <(npx taskchart completion bash)
  zsh   ~/.zshrc, after compinit    source <(npx taskchart completion zsh)
  fish  ~/.config/fish/config.fish  npx taskchart completion fish | source

It completes the command taskchart, which npm install --global installs, or an alias: alias taskchart='npx taskchart'.

Exit codes: 0 written, 2 wrong usage.
`,
    run: async (args, { stdout }) => {
      const {
        positionals: [shell]
      } = readArguments(args, {}, ['bash|zsh|fish'])
      const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell as keyof typeof SCRIPTS] : undefined
      if (!script) throw usageError(`There is no completion for ${shell}. ${didYouMean(shell, Object.keys(SCRIPTS))}`)
      stdout.write(script(await loadAll()))
      return EXIT.ok
    }
  }
}

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const

/** The options of a command: those that begin a line of its help. */
export function optionsOf({ details }: Pick<Command, 'details'>): string[] {
  return [
    ...new Set([...Array.from(details.matchAll(/(?<=^ {2})--[a-z][a-z\d-]*/gm), ([option]) => option), ...EVERYWHERE])
  ]
}

/** The words that may follow each command. */
function wordsAfter(commands: readonly NamedCommand[]): [name: string, words: readonly string[]][] {
  return [
    ...commands.flatMap(({ name, words }): [string, readonly string[]][] => (words ? [[name, words]] : [])),
    ['help', commands.map(({ name }) => name)]
  ]
}

function bashScript(commands: readonly NamedCommand[]): string {
  return `_taskchart() {
  local current=\${COMP_WORDS[COMP_CWORD]} words= options=
  case \${COMP_WORDS[1]} in
${commands.map(command => `    ${command.name}) options='${optionsOf(command).join(' ')}' ;;`).join('\n')}
  esac
  [ "$COMP_CWORD" -eq 2 ] && case \${COMP_WORDS[1]} in
${wordsAfter(commands)
  .map(([name, words]) => `    ${name}) words='${words.join(' ')}' ;;`)
  .join('\n')}
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    words='${commands.map(({ name }) => name).join(' ')} help'
    options='${ALONE.join(' ')}'
  fi
  case $current in -*) words=$options ;; esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _taskchart taskchart
`
}

function zshScript(commands: readonly NamedCommand[]): string {
  return `_taskchart() {
  local -a names
  if (( CURRENT == 2 )); then
    [[ $PREFIX == -* ]] && compadd -- ${ALONE.join(' ')} && return
    names=(${commands.map(({ name, summary }) => `'${name}:${quoted(summary)}'`).join(' ')} 'help:the help of a command')
    _describe command names
    return
  fi
  if [[ $PREFIX == -* ]]; then
    case $words[2] in
${commands.map(command => `      ${command.name}) compadd -- ${optionsOf(command).join(' ')} ;;`).join('\n')}
    esac
    return
  fi
  case $words[2] in
${wordsAfter(commands)
  .map(([name, words]) => `    ${name}) (( CURRENT == 3 )) && compadd -- ${words.join(' ')} ;;`)
  .join('\n')}
  esac
  _files
}
compdef _taskchart taskchart
`
}

function fishScript(commands: readonly NamedCommand[]): string {
  const first = [...commands, { name: 'help', summary: 'the help of a command' }]
  const lines = [
    ...first.map(({ name, summary }) => `-n __fish_use_subcommand -f -a ${name} -d '${quoted(summary)}'`),
    ...ALONE.map(option => `-n __fish_use_subcommand -l ${option.slice(2)}`),
    ...wordsAfter(commands).map(([name, words]) => `-n '__fish_prev_arg_in ${name}' -f -a '${words.join(' ')}'`),
    ...commands.flatMap(command =>
      optionsOf(command).map(option => `-n '__fish_seen_subcommand_from ${command.name}' -l ${option.slice(2)}`)
    )
  ]
  return lines.map(line => `complete -c taskchart ${line}\n`).join('')
}

/** Text within single quotes. */
function quoted(text: string): string {
  return text.replaceAll("'", '’')
}
