import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { isObject, type JsonValue } from '../../machines/protocol/codec/json.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'

/** A key that seals, as the store has it. */
interface SealingKey {
  readonly id: string
  /** Base64. */
  readonly key: string
  readonly madeMs: number
}

/** The owner of the keys: no caller has this name, and none can read the data of another. */
const OWNER: CallContext = { principal: 'urn:taskchart:keys', tenant: '' }
/** The note with the keys, and its context. */
const NAME = 'urn:taskchart:keys:1'

const DAY_MS = 24 * 60 * 60 * 1000
/** How long a key seals, in milliseconds. The one before it still opens. */
const SEALS_MS = 30 * DAY_MS
/** How long the keys are stored after the newest was made, in milliseconds. */
const STORED_MS = 365 * DAY_MS

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const ID_BYTES = 6
const IV_BYTES = 12
const TAG_BYTES = 16

/**
 * Seals what goes to a client and comes back with its next request: encrypted, and bound to its caller. The key is made
 * once, and is in the store, so that every node and every later process opens it. The newest two keys are accepted.
 */
export class StateSeal {
  readonly #runtime: ServedRuntime
  /** The newest first. */
  #keys: readonly SealingKey[] = []

  constructor(runtime: ServedRuntime) {
    this.#runtime = runtime
  }

  /** Seals a value for a caller. */
  async seal(value: JsonValue, call: CallContext): Promise<string> {
    const key = await this.#newest()
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv(CIPHER, Buffer.from(key.key, 'base64'), iv).setAAD(callerOf(call))
    const sealed = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()])
    return Buffer.concat([Buffer.from(key.id, 'base64url'), iv, cipher.getAuthTag(), sealed]).toString('base64url')
  }

  /** The value that was sealed for this caller; `undefined` for anything else. */
  async open(text: string, call: CallContext): Promise<JsonValue | undefined> {
    const bytes = Buffer.from(text, 'base64url')
    if (bytes.length < ID_BYTES + IV_BYTES + TAG_BYTES) return undefined
    const id = bytes.subarray(0, ID_BYTES).toString('base64url')
    const key = this.#find(id) ?? (await this.#load(), this.#find(id))
    if (!key) return undefined
    const [iv, tag, sealed] = [
      bytes.subarray(ID_BYTES, ID_BYTES + IV_BYTES),
      bytes.subarray(ID_BYTES + IV_BYTES, ID_BYTES + IV_BYTES + TAG_BYTES),
      bytes.subarray(ID_BYTES + IV_BYTES + TAG_BYTES)
    ]
    try {
      const decipher = createDecipheriv(CIPHER, Buffer.from(key.key, 'base64'), iv)
        .setAAD(callerOf(call))
        .setAuthTag(tag)
      return JSON.parse(Buffer.concat([decipher.update(sealed), decipher.final()]).toString('utf8')) as JsonValue
    } catch {
      return undefined
    }
  }

  #find(id: string): SealingKey | undefined {
    return this.#keys.find(key => key.id === id)
  }

  /** The key that seals now. Makes one if there is none, or if it has sealed for long enough. */
  async #newest(): Promise<SealingKey> {
    const nowMs = this.#runtime.settings.clock.now()
    const isFresh = () => nowMs < (this.#keys[0]?.madeMs ?? -Infinity) + SEALS_MS
    const before = isFresh() ? undefined : await this.#load()
    if (!isFresh()) {
      const made = {
        id: randomBytes(ID_BYTES).toString('base64url'),
        key: randomBytes(KEY_BYTES).toString('base64'),
        madeMs: nowMs
      }
      const value = [made, ...this.#keys.slice(0, 1)].map(key => ({ ...key }))
      this.#keys = keysIn(
        await this.#runtime.writeNote({ name: NAME, contextId: NAME, before, value, storedMs: STORED_MS }, OWNER)
      )
    }
    return this.#keys[0] as SealingKey
  }

  async #load(): Promise<JsonValue | undefined> {
    const value = await this.#runtime.readNote(NAME, OWNER)
    this.#keys = keysIn(value)
    return value
  }
}

function keysIn(value: JsonValue | undefined): readonly SealingKey[] {
  return Array.isArray(value) ? (value.filter(isObject) as unknown as readonly SealingKey[]) : []
}

/** The caller that a value is sealed for. */
function callerOf({ principal, tenant }: CallContext): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([principal ?? '', tenant ?? '']))
    .digest()
}
