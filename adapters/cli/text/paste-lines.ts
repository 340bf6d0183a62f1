import { shellText, shellWord } from './terminal-text.ts'

/** The parts that all command lines share. */
export interface PasteLine {
  readonly url: string
  readonly out?: string | undefined
  /** The binding to use, unless the card chooses. */
  readonly binding?: string | undefined
  /** Other origins that may receive the key. */
  readonly credentialOrigins?: readonly string[] | undefined
  /** The names of headers to send. The line has placeholders for their values. */
  readonly headers?: readonly string[] | undefined
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
export function sendLine({ text, context, task, reference, ...place }: SendLine): string {
  const options = [...optionsOf({ context, task, reference }), ...placeOptions(place)]
  return ['npx taskchart send', shellWord(place.url), shellText(text), ...options].join(' ')
}

/** A `watch` command to paste into a terminal. */
export function watchLine({ task, ...place }: WatchLine): string {
  const id = shellWord(task)
  const options = placeOptions(place)
  const words = startsWithDash(id) ? [...options, '--', id] : [id, ...options]
  return ['npx taskchart watch', shellWord(place.url), ...words].join(' ')
}

/** A `chat` command to paste into a terminal. It continues the last context of its URL. */
export function chatLine(place: PasteLine): string {
  return ['npx taskchart chat', shellWord(place.url), ...placeOptions(place)].join(' ')
}

function placeOptions({ out, binding, credentialOrigins, headers = [], needsKey }: PasteLine): string[] {
  return [
    ...optionsOf({ out, binding, 'credential-origin': credentialOrigins, header: headers.map(name => `${name}: …`) }),
    ...(needsKey ? ['--api-key …'] : [])
  ]
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
