import { random } from 'nanoid'

/** Makes a unique id: a string of at most 128 characters, without control characters. */
export type Ids = () => string

/** Characters of one id, and how many of them are its time: milliseconds since 1970 to the base of the alphabet. */
const LENGTH = 22
const TIME = 8

/** Ids that are made at a time. Larger batches gain little, since an id keeps the string of its batch in memory. */
const BATCH = 8

/** Random bytes of one draw. A byte's lower 6 bits are a character, except for 62 and 63. */
const DRAWN = 128

/** In the order of their codes, so that the order of texts is that of times. */
const ALPHABET = Buffer.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz')
const characters = Buffer.alloc(LENGTH * BATCH)

let batch = ''
let next = 0

/**
 * Ids of 22 letters and digits: the default. The first eight are about the time at which the id was made. So an index
 * of ids grows at its end, and a store writes one page of it for many new tasks. The others are random (nanoid, 83
 * bits).
 */
export const randomIds: Ids = () => {
  if (next === batch.length) {
    batch = draw()
    next = 0
  }
  const first = next
  next += LENGTH
  return batch.slice(first, next)
}

/**
 * A batch as one text: 70 bytes an id. nanoid's own function makes an object for each character: 700 bytes an id (Node
 * 24).
 */
function draw(): string {
  writeTime(Date.now())
  let filled = TIME
  while (filled < characters.length) {
    for (const byte of random(DRAWN)) {
      const character = ALPHABET[byte & 63]
      if (character === undefined || filled >= characters.length) continue
      characters[filled++] = character
      if (filled % LENGTH === 0) filled += characters.copy(characters, filled, 0, TIME)
    }
  }
  return characters.toString('latin1')
}

/** Writes the time of a batch to its first id. */
function writeTime(ms: number): void {
  let left = ms
  for (let place = TIME - 1; place >= 0; place -= 1) {
    characters[place] = ALPHABET[left % ALPHABET.length] as number
    left = Math.floor(left / ALPHABET.length)
  }
}
