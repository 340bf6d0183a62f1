import { nanoid } from 'nanoid'

/** Makes a fresh id: a string without control characters, at most 128 long, never given out twice. */
export type Ids = () => string

const LENGTH = 21
const HYPHEN = 0x2d
const UNDERSCORE = 0x5f

/** Each id is written here for a moment. */
const written = Buffer.alloc(LENGTH)

/**
 * Ids of 21 random characters of `A-Za-z0-9_-`: the default. Each is a text of its own: nanoid's are chains of pieces, which
 * take several times the memory. None begins with a hyphen, which commands that it is pasted into would take for an option.
 */
export const randomIds: Ids = () => {
  written.write(nanoid(LENGTH), 'latin1')
  if (written[0] === HYPHEN) written[0] = UNDERSCORE
  return written.toString('latin1')
}
