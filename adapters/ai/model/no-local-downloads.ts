import type { CallOptions } from '../answer/answer-options.ts'

/** Has the model, not this process, fetch what clients name by an address: they could name what only this process can reach. */
export const noLocalDownloads: NonNullable<CallOptions['experimental_download']> = async files => files.map(() => null)
