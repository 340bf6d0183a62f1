/** One thing that the work of a simulated agent does. Its place in the script stands in all that it says. */
export type Op =
  | { readonly kind: 'progress' | 'question' | 'login' | 'effect' | 'throw' | 'fail' | 'reject' }
  | { readonly kind: 'chunks'; readonly count: number }
  | { readonly kind: 'sleep' | 'busy' | 'hurry'; readonly ms: number }

/** The script as the text of the message that opens a task. */
export function textOfScript(ops: readonly Op[]): string {
  return JSON.stringify(ops)
}

export function scriptOf(text: string): readonly Op[] {
  return JSON.parse(text) as Op[]
}
