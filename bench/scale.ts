/** How much a run does. */
export interface Scale {
  /**
   * How often the servers take turns with requests, and how many one round has where many are in flight. Short rounds:
   * the machine changes.
   */
  readonly requestRounds: number
  readonly requests: number
  /** How often they take turns with what takes longer: appended chunks, floods, comparisons. */
  readonly rounds: number
  /** Requests to each server before the first round: on Node 24 the first 20,000 cost twice as much as the next. */
  readonly warmUps: number
  /** Chunks of the longest streamed artifact. */
  readonly chunks: number
  /** Tasks that wait at the same time, for their memory. */
  readonly waitingTasks: number
  /** Connections that do nothing, for their memory. */
  readonly idleConnections: number
  /** Tasks that are open when a server with a durable store is killed, and when a store is compared. */
  readonly openTasks: number
  /** Events of one large task. */
  readonly largeEvents: number
  /** How long a round of requests at a steady pace goes on, beside a flood and without. */
  readonly pacedMs: number
  /** Fresh processes whose memory is measured. */
  readonly memoryRounds: number
  /** Tasks that a database has in the end that grows. */
  readonly storedTasks: number
}

/** What counts. */
export const full: Scale = {
  requestRounds: 15,
  requests: 4000,
  rounds: 5,
  warmUps: 20_000,
  chunks: 4000,
  waitingTasks: 10_000,
  idleConnections: 5000,
  openTasks: 100_000,
  largeEvents: 100_000,
  pacedMs: 6000,
  memoryRounds: 3,
  storedTasks: 1_000_000
}

/** For trying: the figures are not to be quoted. */
export const quick: Scale = {
  requestRounds: 2,
  requests: 2000,
  rounds: 2,
  warmUps: 2000,
  chunks: 400,
  waitingTasks: 1000,
  idleConnections: 1000,
  openTasks: 5000,
  largeEvents: 5000,
  pacedMs: 4000,
  memoryRounds: 1,
  storedTasks: 20_000
}
