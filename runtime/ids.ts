import { randomFillSync } from 'node:crypto'

/** Makes a fresh id: a string without control characters, at most 128 long, never given out twice. */
export type Ids = () => string

/** Random bytes of one id. */
const BYTES = 16

/** Random bytes for the next ids: to ask for those of each takes ten times as long. */
const pool = Buffer.alloc(BYTES * 256)
let used = pool.length

/** Ids of 22 random characters of `A-Za-z0-9_-`, 127 bits: the default. They begin with a letter, so that no command takes one for an option. */
export const randomIds: Ids = () => {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const first = used
  used += BYTES
  pool.writeUInt8(pool.readUInt8(first) & 0x7f, first)
  return pool.toString('base64url', first, used)
}
