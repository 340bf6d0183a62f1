import { isDeepStrictEqual } from 'node:util'
import type { JsonValue } from '../../machines/protocol/codec/json.ts'
import type { Message } from '../../machines/protocol/objects.ts'
import type { CallContext } from '../access/call-context.ts'
import type { DeduplicationKey, Scope } from '../store/rows.ts'
import { type ChangeKind, runOnOwner, withLostRaceRetry } from './deliver.ts'
import type { OperationServices } from './dependencies.ts'
import { oneAtATime } from './keyed-messages.ts'

/** A change of a note: a JSON value that an adapter stores by a name, beside the tasks of a context. */
export interface NoteChange {
  /** Unique in the scope. */
  readonly name: string
  /** The context that the note belongs to. It is erased with that. */
  readonly contextId: string
  /** The value on which the change is based; `undefined` if there was none. */
  readonly before: JsonValue | undefined
  readonly value: JsonValue
  /** How long it is stored, in milliseconds. */
  readonly storedMs: number
}

/** A note in the index of messages by key, whose rows have a message. */
type NoteRow = DeduplicationKey & { readonly reply: { readonly parts: readonly [{ readonly data: JsonValue }] } }

/** Reads a note; `undefined` if there is none, or if it has expired. It is one read of a row. */
export async function readNote(
  { store, clock }: OperationServices,
  scope: Scope,
  name: string
): Promise<JsonValue | undefined> {
  const row = (await store.readSend(scope, keyOf(name))) as NoteRow | undefined
  return row && row.expiresAtMs > clock.now() ? row.reply.parts[0].data : undefined
}

/**
 * Writes a note by the writer of its context, on the node that has the context. If the note has another value than the
 * change is based on, it stays. Gives the value that is stored then.
 */
export function writeNote(
  services: OperationServices,
  scope: Scope,
  change: NoteChange,
  call: Pick<CallContext, 'connection' | 'signal'>
): Promise<JsonValue> {
  return runOnOwner(services, NOTE, { scope, ...change }, call)
}

type ScopedNoteChange = NoteChange & { readonly scope: Scope }

/** Writes a note, unless it has another value than the change is based on. */
export const NOTE: ChangeKind<ScopedNoteChange, JsonValue> = {
  name: 'note',
  placeOf: ({ scope, contextId }) => ({ context: { ...scope, contextId } }),
  isRepeatable: () => true,
  run: noteHere
}

function noteHere(
  services: OperationServices,
  { scope, name, contextId, before, value, storedMs }: ScopedNoteChange,
  connection?: CallContext['connection']
): Promise<JsonValue> {
  const { contexts, clock, pendingSends } = services
  const atMs = clock.now()
  const row: DeduplicationKey = { key: keyOf(name), fingerprint: '', atMs, expiresAtMs: atMs + storedMs }
  const reply: Message = { messageId: name, contextId, role: 'ROLE_AGENT', parts: [{ data: value }] }
  const change = () =>
    withLostRaceRetry(
      contexts,
      { ...scope, contextId },
      async live => {
        const now = await readNote(services, scope, name)
        if (now !== undefined && !isDeepStrictEqual(now, before)) return now
        await live.write({ ...row, reply })
        return value
      },
      connection
    )
  return oneAtATime(pendingSends, scope, row, change)
}

/** The key of a note in the index of messages by key. */
function keyOf(name: string): string {
  return JSON.stringify([name, 'note'])
}
