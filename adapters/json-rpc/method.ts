import type { CallContext } from '../../runtime/access/call-context.ts'

/** A method that clients call: what it answers, or its stream. Errors come with those. */
export type Method =
  | { readonly streaming: false; readonly answer: (params: unknown, call: CallContext) => Promise<unknown> }
  | { readonly streaming: true; readonly events: (params: unknown, call: CallContext) => AsyncGenerator<object, void, undefined> }
