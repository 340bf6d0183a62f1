/** A file of 0.3: its bytes as base64, or its URL. */
export interface File03 {
  readonly bytes?: string
  readonly uri?: string
  readonly name?: string
  readonly mimeType?: string
}

/** A part of 0.3. */
export type Part03 = { readonly metadata?: unknown } & (
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file'; readonly file: File03 }
  | { readonly kind: 'data'; readonly data: object }
)

/** A message of 0.3. */
export interface Message03 {
  readonly kind: 'message'
  readonly role: 'user' | 'agent'
  readonly parts: readonly Part03[]
  readonly [member: string]: unknown
}

/** An artifact of 0.3. */
export interface Artifact03 {
  readonly parts: readonly Part03[]
  readonly [member: string]: unknown
}

/** A status of 0.3; `state` in lower case with hyphens. */
export interface Status03 {
  readonly state: string
  readonly message?: Message03
  readonly timestamp?: string
}

/** A task of 0.3. */
export interface Task03 {
  readonly kind: 'task'
  readonly status: Status03
  readonly artifacts?: readonly Artifact03[]
  readonly history?: readonly Message03[]
  readonly [member: string]: unknown
}

/** A status update of 0.3. `final`: the stream closes after it. */
export interface StatusUpdate03 {
  readonly kind: 'status-update'
  readonly status: Status03
  readonly final: boolean
  readonly [member: string]: unknown
}

/** An artifact update of 0.3. */
export interface ArtifactUpdate03 {
  readonly kind: 'artifact-update'
  readonly artifact: Artifact03
  readonly [member: string]: unknown
}

/** An item of a 0.3 stream. */
export type Event03 = Task03 | Message03 | StatusUpdate03 | ArtifactUpdate03

/** A webhook of a task in 0.3. */
export interface PushConfig03 {
  readonly taskId: string
  readonly pushNotificationConfig: { readonly id?: string; readonly [member: string]: unknown }
}
