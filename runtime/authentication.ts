/** What a connection or a request brings to show who calls. Header names are lower-case. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string | undefined>>
}

/** Who calls. */
export interface Principal {
  /** Names the caller, the same at every call. Its tasks and contexts are seen by nobody else. */
  readonly id: string
  /** When the credentials run out, in milliseconds since 1970; from then on every frame is refused. Default never. */
  readonly expiresAtMs?: number
}

/** Tells who calls, or nothing if the credentials do not say so. An error counts as nothing. */
export type Authenticate = (credentials: Credentials) => Principal | undefined | Promise<Principal | undefined>
