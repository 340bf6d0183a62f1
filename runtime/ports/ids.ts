import { random } from 'nanoid'

/** Makes a unique id: a string of at most 128 characters, without control characters. */
export type Ids = () => string

/** Characters of one id: 131 bits. */
const LENGTH = 22

/** Ids that are made at a time. Larger batches gain little, since an id keeps the string of its batch in memory. */
const BATCH = 8

/** Random bytes of one draw. A byte's lower 6 bits are a character, except for 62 and 63. */
const DRAWN = 256

const ALPHABET = Buffer.from('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz')
const characters = Buffer.alloc(LENGTH * BATCH)

let batch = ''
let next = 0

/** Ids of 22 random letters and digits (the random bytes of nanoid, 131 bits): the default. */
export const randomIds: Ids = () => {
  if (next === batch.length) {
    batch = draw()
    next = 0
  }
  const first = next
  next += LENGTH
  return batch.slice(first, next)
}

/** A batch as one text: 70 bytes an id. nanoid's own function makes an object for each character: 700 bytes an id (Node 24). */
function draw(): string {
  let filled = 0
  while (filled < characters.length) {
    for (const byte of random(DRAWN)) {
      const character = ALPHABET[byte & 63]
      if (character !== undefined && filled < characters.length) characters[filled++] = character
    }
  }
  return characters.toString('latin1')
}
