/** Older versions of A2A for our servers, through the official SDK's compatibility layer. */
export { dialect03 } from './v03.ts'
export type { Dialect, RestCall, RestRequest } from './dialect.ts'
