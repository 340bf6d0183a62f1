import { shellText, shellWord } from './terminal-text.ts'

/** What every line to paste says. */
interface PasteLine {
  readonly url: string
  readonly out?: string | undefined
  /** The binding to speak, if the agent's card is not to choose. */
  readonly binding?: string | undefined
  /** Origins beside that of the address which may have the key. */
  readonly credentialOrigins?: readonly string[] | undefined
  /** Whether a key has to be given. The line has a gap for it, never the key. */
  readonly needsKey: boolean
}

/** What a line that sends a message says. */
export interface SendLine extends PasteLine {
  readonly text: string
  readonly context?: string | undefined
  readonly task?: string | undefined
  readonly reference?: string | undefined
}

/** What a line that watches a task says. */
export interface WatchLine extends PasteLine {
  readonly task: string
}

/** The line to paste into a terminal that sends a message. */
export function sendLine({ url, text, context, task, reference, out, binding, credentialOrigins, needsKey }: SendLine): string {
  const options = optionsOf({ context, task, reference, out, binding, 'credential-origin': credentialOrigins })
  return ['npx taskchart send', shellWord(url), shellText(text), ...options, ...gapFor(needsKey)].join(' ')
}

/** The line to paste into a terminal that watches a task. */
export function watchLine({ url, task, out, binding, credentialOrigins, needsKey }: WatchLine): string {
  const id = shellWord(task)
  const options = [...optionsOf({ out, binding, 'credential-origin': credentialOrigins }), ...gapFor(needsKey)]
  const words = startsWithDash(id) ? [...options, '--', id] : [id, ...options]
  return ['npx taskchart watch', shellWord(url), ...words].join(' ')
}

/** Values may start with a dash, which would make them options. */
function optionsOf(options: Readonly<Record<string, string | readonly string[] | undefined>>): string[] {
  return Object.entries(options).flatMap(([name, values = []]) =>
    [values].flat().map(value => {
      const word = shellWord(value)
      return startsWithDash(word) ? `--${name}=${word}` : `--${name} ${word}`
    })
  )
}

/** Quotes are for the shell; the command gets what they hold. */
function startsWithDash(word: string): boolean {
  return /^["']?-/.test(word)
}

function gapFor(needsKey: boolean): string[] {
  return needsKey ? ['--api-key …'] : []
}
