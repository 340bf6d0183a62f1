import { shellText, shellWord } from './terminal-text.ts'

/** What a line to paste says. */
export interface SendLine {
  readonly url: string
  readonly text: string
  readonly context?: string | undefined
  readonly task?: string | undefined
  readonly reference?: string | undefined
  readonly out?: string | undefined
  /** Whether a key has to be given. The line has a gap for it, never the key. */
  readonly needsKey: boolean
}

/** The line to paste into a terminal that sends a message. */
export function sendLine({ url, text, context, task, reference, out, needsKey }: SendLine): string {
  const options = { context, task, reference, out }
  const given = Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [option(name, shellWord(value))]))
  const words = ['npx taskchart send', shellWord(url), shellText(text), ...given, ...(needsKey ? ['--api-key …'] : [])]
  return words.join(' ')
}

/** Ids may start with a dash, which would make them options. */
function option(name: string, value: string): string {
  return value.startsWith('-') ? `--${name}=${value}` : `--${name} ${value}`
}
