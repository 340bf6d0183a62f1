import { A2AError } from '../../machines/protocol/errors.ts'
import type { Agent } from '../agent/define-agent.ts'
import type { Logger } from '../ports/logger.ts'
import { VERSION_CHARACTERS, versionOfSnapshot } from '../store/rows.ts'
import type { RestorableRow } from '../store/store.ts'
import type { Counters } from '../telemetry/counters.ts'

interface Services {
  readonly agent: Pick<Agent, 'version' | 'earlier'>
  readonly logger: Logger
  readonly counters: Pick<Counters, 'newerTasks'>
}

/**
 * Leaves the tasks of a newer version of the agent in the store. In a cluster a shard may go to a node of an older
 * version, which does not have their code. They go on when a node with their version gets the shard.
 */
export class NewerTasks {
  readonly #services: Services
  readonly #logged = new Set<string>()

  constructor(services: Services) {
    this.#services = services
  }

  /** The tasks of a context that stay in the store, with their versions; `undefined` if there are none. */
  among(rows: readonly RestorableRow[]): ReadonlyMap<string, string> | undefined {
    const { agent, counters } = this.#services
    const newer = new Map<string, string>()
    for (const { taskId, snapshot = '' } of rows) {
      const version = versionOfSnapshot(snapshot.slice(0, VERSION_CHARACTERS))
      if (agent.earlier?.[version] !== undefined || !isNewer(version, agent.version)) continue
      newer.set(taskId, version)
      this.#log(taskId, version)
    }
    counters.newerTasks += newer.size
    return newer.size === 0 ? undefined : newer
  }

  /** The error for a call that would change such a task. */
  refusal(taskId: string, version: string): A2AError {
    return new A2AError(
      'Overloaded',
      `Task ${taskId} was opened by version ${version} of this agent, and version ${this.#services.agent.version} has it now. Send the request again later.`,
      { metadata: { taskId, version }, retryAfterMs: 1000 }
    )
  }

  /** One line for each version. */
  #log(taskId: string, version: string): void {
    if (this.#logged.has(version)) return
    this.#logged.add(version)
    const present = this.#services.agent.version
    this.#services.logger.warn('tasks stay stored, because a newer version of the agent opened them', {
      taskId,
      version,
      present
    })
  }
}

/**
 * Whether a version is newer than another, by the numbers at their starts: 2.10.0 is newer than 2.9, and 2.0 is not
 * newer than 2. Those without a number are not newer than any.
 */
export function isNewer(version: string, than: string): boolean {
  const [own, other] = [numbersOf(version), numbersOf(than)]
  const at = own.findIndex((number, i) => number !== (other[i] ?? 0))
  return at >= 0 && Number(own[at]) > (other[at] ?? 0)
}

function numbersOf(version: string): number[] {
  const [text = ''] = /^\d{1,15}(\.\d{1,15})*/.exec(version) ?? []
  return text.split('.').map(Number)
}
