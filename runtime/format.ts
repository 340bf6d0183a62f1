import { A2AError } from '../machines/protocol/errors.ts'

/** The form in which this version of taskchart stores the actors of its own two charts. Texts without a format have the first. */
export const FORMAT = 1

/** Members that go with many texts, as the beginning of each. */
export function stampOf(members: Readonly<Record<string, unknown>>): string {
  return `${JSON.stringify(members).slice(0, -1)},`
}

/** The JSON text of an object, with the members of a stamp before its own. */
export function stamped(stamp: string, text: string): string {
  return stamp + text.slice(1)
}

/** Throws InternalError for what a later taskchart has stored in a form that this one does not know. */
export function checkFormat({ format = FORMAT }: { readonly format?: unknown }): void {
  if (typeof format === 'number' && format <= FORMAT) return
  throw new A2AError('InternalError', `This conversation was stored by a newer taskchart, in format ${String(format)}, and this one knows format ${FORMAT} at the most. It was left as it is: update taskchart.`)
}
