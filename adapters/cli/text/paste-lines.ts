import { shellText, shellWord } from './terminal-text.ts'

/** The parts that all command lines share. */
export interface PasteLine {
  readonly url: string
  readonly out?: string | undefined
  /** The binding to use, unless the card chooses. */
  readonly binding?: string | undefined
  /** Other origins that may receive the key. */
  readonly credentialOrigins?: readonly string[] | undefined
  /** Whether the agent requires a key. The line then contains a placeholder, never the key. */
  readonly needsKey: boolean
}

/** The parts of a `send` command. */
export interface SendLine extends PasteLine {
  readonly text: string
  readonly context?: string | undefined
  readonly task?: string | undefined
  readonly reference?: string | undefined
}

/** The parts of a `watch` command. */
export interface WatchLine extends PasteLine {
  readonly task: string
}

/** A `send` command to paste into a terminal. */
export function sendLine({ url, text, context, task, reference, out, binding, credentialOrigins, needsKey }: SendLine): string {
  const options = optionsOf({ context, task, reference, out, binding, 'credential-origin': credentialOrigins })
  return ['npx taskchart send', shellWord(url), shellText(text), ...options, ...gapFor(needsKey)].join(' ')
}

/** A `watch` command to paste into a terminal. */
export function watchLine({ url, task, out, binding, credentialOrigins, needsKey }: WatchLine): string {
  const id = shellWord(task)
  const options = [...optionsOf({ out, binding, 'credential-origin': credentialOrigins }), ...gapFor(needsKey)]
  const words = startsWithDash(id) ? [...options, '--', id] : [id, ...options]
  return ['npx taskchart watch', shellWord(url), ...words].join(' ')
}

/** A `chat` command to paste into a terminal. It continues the last context of its URL. */
export function chatLine({ url, out, binding, credentialOrigins, needsKey }: PasteLine): string {
  return ['npx taskchart chat', shellWord(url), ...optionsOf({ out, binding, 'credential-origin': credentialOrigins }), ...gapFor(needsKey)].join(' ')
}

/** A value that starts with a dash is joined to its option by `=`. */
function optionsOf(options: Readonly<Record<string, string | readonly string[] | undefined>>): string[] {
  return Object.entries(options).flatMap(([name, values = []]) =>
    [values].flat().map(value => {
      const word = shellWord(value)
      return startsWithDash(word) ? `--${name}=${word}` : `--${name} ${word}`
    })
  )
}

/** Whether the command would take a word for an option. The shell removes the quotes first. */
function startsWithDash(word: string): boolean {
  return /^["']?-/.test(word)
}

function gapFor(needsKey: boolean): string[] {
  return needsKey ? ['--api-key …'] : []
}
