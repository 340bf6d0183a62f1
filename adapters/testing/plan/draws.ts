import type { Model } from './model.ts'

/** The error of a test whose chart draws random numbers. */
export class DrawError extends TypeError {
  constructor(cause: unknown) {
    super(
      'its chart draws random numbers, so each walk may go another way, and no test can say what has to happen. Draw them in an actor, such as draw: fromPromise(async () => Math.random()), and take its output: onDone: { actions: assign({ number: ({ event }) => event.output }) }. The cases say what it gives: export const cases = { results: { draw: { low: 0.1, high: 0.9 } } }',
      { cause }
    )
  }
}

/** Sees whether random numbers are drawn, with `Math` or `crypto`. */
export class DrawWatch {
  isDrawn = false

  /** A model of a chart whose steps it watches. */
  over<Move>({ begin, take }: Model<Move>): Model<Move> {
    return {
      begin: input => this.#during(() => begin(input)),
      take: (turn, move) => this.#during(() => take(turn, move))
    }
  }

  #during<T>(run: () => T): T {
    const { random } = Math
    const [randomUUID, getRandomValues] = [crypto.randomUUID.bind(crypto), crypto.getRandomValues.bind(crypto)]
    const noted =
      <Arguments extends unknown[], Result>(draw: (...given: Arguments) => Result) =>
      (...given: Arguments) => {
        this.isDrawn = true
        return draw(...given)
      }
    Object.assign(Math, { random: noted(random) })
    Object.assign(crypto, { randomUUID: noted(randomUUID), getRandomValues: noted(getRandomValues) })
    try {
      return run()
    } finally {
      Object.assign(Math, { random })
      for (const name of ['randomUUID', 'getRandomValues']) Reflect.deleteProperty(crypto, name)
    }
  }
}
