import { contextName, type Commit, type Store } from '../../runtime/store/store.ts'
import type { WorldConfig } from './config.ts'
import type { Journal } from './journal.ts'
import type { Ledger } from './ledger.ts'
import { randomOf, type Random } from './random.ts'
import type { ClockView } from './virtual-clock.ts'

/** What becomes of a commit. `before` and `after`: it is written by then, or is not. */
type Fate = 'written' | 'fails before' | 'fails after' | 'kills before' | 'kills after'

/** What PostgreSQL calls it if it has written nothing because it has no room. */
const NO_ROOM = '53100'

/** What a disk works with. `killed` hears that the process dies at this very moment. */
interface DiskServices {
  readonly config: WorldConfig
  readonly journal: Journal
  readonly ledger: Ledger
  readonly killed: () => void
}

/**
 * A store that outlives the processes which use it, and troubles them: it is slow, answers in another order than it was
 * asked, fails so that nobody knows whether it wrote, and loses what it had not begun when its process is killed.
 */
export class Disk {
  readonly engine: Store
  readonly #services: DiskServices
  readonly #random: Random
  #ordered: Fate[] = []
  #isCalm = false

  constructor(engine: Store, services: DiskServices) {
    this.engine = engine
    this.#services = services
    this.#random = randomOf(services.config.seed, 'disk')
  }

  /** Gives the next commits a fate. */
  order(fates: readonly Fate[]): void {
    this.#ordered.push(...fates)
  }

  /** From now on nothing fails any more. */
  calmDown(): void {
    this.#isCalm = true
    this.#ordered = []
  }

  /** The store as one process has it, which ends with the clock of that. */
  open(clock: ClockView): Store {
    const dueMs = new Map<string, number>()
    const waiting = new Set<() => void>()
    const underWay = new Set<Promise<unknown>>()
    let isClosed = false

    /** Does something after a while, what bears the same name in the order of the calls. */
    const later = (run: () => void, name?: string) => {
      const { slowStoreMs } = this.#services.config
      if (slowStoreMs === 0 || isClosed) return run()
      const lastMs = name === undefined ? 0 : (dueMs.get(name) ?? 0)
      const atMs = Math.max(clock.now() + (this.#isCalm ? 0 : this.#random.below(slowStoreMs + 1)), lastMs)
      if (name !== undefined) dueMs.set(name, atMs)
      const due = () => {
        clock.clearTimeout(timer)
        if (waiting.delete(due)) run()
      }
      waiting.add(due)
      const timer = clock.setTimeout(due, atMs - clock.now())
    }
    const called = <T>(name: string | undefined, run: () => Promise<T>): Promise<T> => {
      const call = new Promise<T>((resolve, reject) => {
        if (isClosed) return reject(new TypeError('The store is closed.'))
        later(() => {
          run().then(
            value => later(() => resolve(value)),
            error => later(() => reject(error))
          )
        }, name)
      })
      underWay.add(call)
      const settled = () => void underWay.delete(call)
      call.then(settled, settled)
      return call
    }
    const read =
      <Args extends readonly unknown[], T>(call: (...args: Args) => Promise<T>) =>
      (...args: Args): Promise<T> =>
        called(undefined, () => this.read(() => call(...args)))
    const { engine } = this
    return {
      commit: commit => called(contextName(commit.key), () => this.commit(commit)),
      loadContext: read((key, bytes) => engine.loadContext(key, bytes)),
      readSnapshot: read((scope, taskId) => engine.readSnapshot(scope, taskId)),
      readWakes: read((limit, after) => engine.readWakes(limit, after)),
      readTask: read((scope, taskId, options) => engine.readTask(scope, taskId, options)),
      readEvents: read((scope, taskId, after, limit, bytes) => engine.readEvents(scope, taskId, after, limit, bytes)),
      readTaskMessages: read((scope, taskId, after, bytes) => engine.readTaskMessages(scope, taskId, after, bytes)),
      readJournal: read((scope, taskId) => engine.readJournal(scope, taskId)),
      readMessages: read((key, limit, choice) => engine.readMessages(key, limit, choice)),
      measureTasks: read(choice => engine.measureTasks(choice)),
      listTasks: read((scope, query) => engine.listTasks(scope, query)),
      readSend: read((scope, key) => engine.readSend(scope, key)),
      countOpen: whose => engine.countOpen(whose),
      countStates: (limit, after) => engine.countStates(limit, after),
      readWebhooks: read((scope, taskId) => engine.readWebhooks(scope, taskId)),
      readOpenWebhooks: read((limit, after) => engine.readOpenWebhooks(limit, after)),
      writeWebhook: (scope, webhook, limit) => called(undefined, () => engine.writeWebhook(scope, webhook, limit)),
      noteWebhooks: notes => called(undefined, () => engine.noteWebhooks(notes)),
      deleteWebhook: (scope, taskId, id) => called(undefined, () => engine.deleteWebhook(scope, taskId, id)),
      sweep: (due, limit) => called(undefined, () => engine.sweep(due, limit)),
      erase: whose => called(undefined, () => engine.erase(whose)),
      close: async () => {
        isClosed = true
        for (const due of waiting) due()
        await Promise.allSettled(underWay)
      }
    }
  }

  /** Reads at once, or fails. */
  async read<T>(read: () => Promise<T>): Promise<T> {
    if (!this.#isCalm && this.#random.chance(this.#services.config.readFaults)) throw trouble()
    return read()
  }

  /** Writes at once, as its fate has it. `killed` hears that the process dies, and `written` that it is done. */
  async commit(commit: Commit, killed = this.#services.killed, written = () => {}): Promise<boolean> {
    const { journal, ledger } = this.#services
    const fate = this.#fate()
    const what = `commit ${commit.expected} of ${commit.key.contextId}`
    if (fate === 'kills before' || fate === 'fails before') {
      journal.note(`${what} ${fate}`)
      if (fate === 'fails before') throw Object.assign(trouble(), { code: NO_ROOM })
      killed()
      return new Promise(() => {})
    }
    const isWritten = await this.engine.commit(commit)
    if (isWritten) {
      written()
      ledger.wrote(commit)
    }
    journal.note(
      `${what} ${isWritten ? fate : 'lost its race'}: ${JSON.stringify([commit.log, commit.tasks, commit.journal])}`
    )
    if (fate === 'fails after') throw trouble()
    if (fate !== 'kills after') return isWritten
    killed()
    return new Promise(() => {})
  }

  #fate(): Fate {
    if (this.#isCalm) return 'written'
    const ordered = this.#ordered.shift()
    if (ordered) return ordered
    const { commitFaults, crashes } = this.#services.config
    if (this.#random.chance(commitFaults)) return this.#random.chance(0.5) ? 'fails before' : 'fails after'
    if (this.#random.chance(crashes)) return this.#random.chance(0.5) ? 'kills before' : 'kills after'
    return 'written'
  }
}

function trouble(): Error {
  return new Error('The disk is in trouble.')
}
