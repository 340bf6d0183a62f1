import type { Agent } from './agent.ts'
import type { CleanUps } from './clean-ups.ts'
import type { Clock } from './clock.ts'
import type { ContextLogic } from './context-logic.ts'
import type { Feeds } from './feeds.ts'
import type { Ids } from './ids.ts'
import type { Limits } from './limits.ts'
import type { Logger } from './logger.ts'
import type { Store } from './store.ts'

/** What every context of a runtime works with. */
export interface ContextServices {
  readonly store: Store
  readonly clock: Clock
  readonly ids: Ids
  readonly logger: Logger
  readonly limits: Limits
  readonly feeds: Feeds
  readonly logic: ContextLogic
  readonly agent: Agent
  readonly cleanUps: CleanUps
}
