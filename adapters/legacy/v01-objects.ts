import type { Metadata } from '../../machines/protocol/codec/values.ts'
import type { Part01 } from './v01-parts.ts'

/** A task's state in 0.1. */
export type State01 = 'submitted' | 'working' | 'input-required' | 'completed' | 'canceled' | 'failed'

/** A message of 0.1. */
export interface Message01 {
  readonly role: 'user' | 'agent'
  readonly parts: readonly Part01[]
  readonly metadata?: Metadata
}

/** A status of 0.1. */
export interface Status01 {
  readonly state: State01
  readonly message?: Message01
  readonly timestamp?: string
}

/** An artifact of 0.1, or a chunk of one: it has a number in its task, from 0, instead of an id. */
export interface Artifact01 {
  readonly name?: string
  readonly description?: string
  readonly parts: readonly Part01[]
  readonly index: number
  readonly append?: boolean
  readonly lastChunk?: boolean
  readonly metadata: Metadata
}

/** A task of 0.1, with the id that its client chose. */
export interface Task01 {
  readonly id: string
  readonly sessionId?: string
  readonly status: Status01
  readonly artifacts?: readonly Artifact01[]
  readonly history?: readonly Message01[]
  readonly metadata?: Metadata
}

/** An item of a stream of 0.1. `final`: the stream closes after it. */
export type Event01 =
  | { readonly id: string; readonly status: Status01; readonly final: boolean; readonly metadata?: Metadata }
  | { readonly id: string; readonly artifact: Artifact01; readonly metadata?: Metadata }
