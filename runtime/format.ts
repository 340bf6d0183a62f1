import { A2AError } from '../machines/protocol/errors.ts'

/** The form in which this version of taskchart stores the actors of its own two charts. Texts without a format have the first. */
export const FORMAT = 1

/** A persisted actor as JSON text with more members, which come first. */
export function stamped(members: Readonly<Record<string, unknown>>, text: string): string {
  return `${JSON.stringify(members).slice(0, -1)},${text.slice(1)}`
}

/** Throws InternalError for what a later taskchart has stored in a form that this one does not know. */
export function checkFormat({ format = FORMAT }: { readonly format?: unknown }): void {
  if (typeof format === 'number' && format <= FORMAT) return
  throw new A2AError('InternalError', `This conversation was stored by a newer taskchart, in format ${String(format)}, and this one knows format ${FORMAT} at the most. It was left as it is: update taskchart.`)
}
