/** The keys of the two callers, which they send as `x-api-key`. */
export const KEYS = { attacker: 'the-key-of-the-attacker', observer: 'the-key-of-the-observer' } as const
