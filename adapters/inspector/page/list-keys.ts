/** Where a list is, for its keys. */
export interface ListPlace {
  /** The row that is chosen; -1 for none. */
  readonly active: number
  readonly count: number
  /** How many rows are in sight. */
  readonly page: number
}

/** A row to go to, and the way in which headings are passed over. */
export interface ListMove {
  readonly to: number
  readonly step: 1 | -1
}

/** Where a key leads in a list; `undefined` for a key that means nothing there. */
export function listMove(key: string, { active, count, page }: ListPlace): ListMove | undefined {
  switch (key) {
    case 'ArrowDown':
    case 'j':
      return { to: active + 1, step: 1 }
    case 'ArrowUp':
    case 'k':
      return active < 0 ? { to: 0, step: 1 } : { to: active - 1, step: -1 }
    case 'Home':
      return { to: 0, step: 1 }
    case 'End':
      return { to: count - 1, step: -1 }
    case 'PageDown':
      return { to: Math.min(count - 1, active + page), step: -1 }
    case 'PageUp':
      return { to: Math.max(0, active - page), step: 1 }
    default:
      return undefined
  }
}
