import { nanoid } from 'nanoid'

/** Makes a fresh id: a string without control characters, at most 128 long, never given out twice. */
export type Ids = () => string

/**
 * Ids of 21 random characters of `A-Za-z0-9_-`: the default. Each is a text of its own: nanoid's are chains of pieces, which
 * take several times the memory. None begins with a hyphen, which commands that it is pasted into would take for an option.
 */
export const randomIds: Ids = () => Buffer.from(nanoid().replace(/^-/, '_'), 'latin1').toString('latin1')
