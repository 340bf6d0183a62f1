/** The state that all generators of the process share, in all copies of this package. */
interface Shared {
  /** That of the generator whose code runs in this call. */
  current: UnusedWords | undefined
  /** Those of the generators that run, or await something of their own. */
  readonly running: Set<UnusedWords>
  /** Those that hold words. */
  readonly holding: Set<UnusedWords>
}

const NAME = Symbol.for('taskchart.unsaid.1')
const own: Shared = { current: undefined, running: new Set(), holding: new Set() }
const shared = ((globalThis as Record<symbol, Shared | undefined>)[NAME] ??= own)

/** How a generator says each kind of word. */
const SAYING = {
  progress: 'yield progress(…)',
  artifact: 'yield artifact(…)',
  'input-required': 'yield* inputRequired(…)',
  'auth-required': 'yield* authRequired(…)',
  rejected: 'return rejected(…)',
  failed: 'return failed(…)'
} as const

/** A word that a function of taskchart's makes. */
interface MadeWord {
  readonly type: keyof typeof SAYING
}

/** Maximum words that one generator holds. */
const MOST = 4

/**
 * Words that a generator has made and not used, to find a forgotten `yield`. A word belongs to the generator whose code
 * makes it. After an `await` that is known only if no other generator runs: then such words are not found.
 */
export class UnusedWords {
  readonly #words: MadeWord[] = []

  /** The expressions that use the first of these words in the generator. */
  names(): string[] {
    return this.#words.map(({ type }) => SAYING[type])
  }

  /** Runs the generator's code up to its next `await` or `yield`. */
  run<T>(resume: () => T): T {
    const before = shared.current
    shared.current = this
    shared.running.add(this)
    try {
      return resume()
    } finally {
      shared.current = before
    }
  }

  /** Call it when the generator has yielded or ended. */
  rest(): void {
    shared.running.delete(this)
  }

  /** Call it when the generator has ended. */
  end(): void {
    this.rest()
    shared.holding.delete(this)
  }

  add(word: MadeWord): void {
    if (this.#words.length === MOST) return
    this.#words.push(word)
    shared.holding.add(this)
  }

  remove(word: unknown): void {
    const place = this.#words.lastIndexOf(word as MadeWord)
    if (place >= 0) this.#words.splice(place, 1)
    if (this.#words.length === 0) shared.holding.delete(this)
  }
}

/** Notes a word that an author's code makes, and gives it. */
export function trackWord<Word extends MadeWord>(word: Word): Word {
  const maker = shared.current ?? (shared.running.size === 1 ? shared.running.values().next().value : undefined)
  maker?.add(word)
  return word
}

/** Notes that a word is used: yielded, emitted or returned. */
export function releaseWord(word: unknown): void {
  for (const each of shared.holding) each.remove(word)
}
