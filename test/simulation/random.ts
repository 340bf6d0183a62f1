/** A source of random numbers that a seed decides. */
export interface Random {
  /** True with a probability from 0 to 1. */
  chance(probability: number): boolean
  /** A whole number from 0 up to, and without, `limit`. */
  below(limit: number): number
  /** A number from 0 up to 1. */
  fraction(): number
}

/** The random source of one part of a world: those of other labels do not disturb it. */
export function randomOf(seed: number, label: string): Random {
  let state = mixed(seed, label)
  const fraction = () => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    fraction,
    below: limit => Math.floor(fraction() * limit),
    chance: probability => probability > 0 && fraction() < probability
  }
}

/** FNV-1a over the label, begun with the seed. */
function mixed(seed: number, label: string): number {
  let hash = 0x811c9dc5 ^ seed
  for (let i = 0; i < label.length; i += 1) hash = Math.imul(hash ^ label.charCodeAt(i), 0x01000193)
  return hash
}
