import type { Logger } from '../../../runtime/ports/logger.ts'

/** What tells of rejections that nobody handles: `process`. */
export interface RejectionSource {
  on(event: 'unhandledRejection', listener: (error: unknown) => void): unknown
  off(event: 'unhandledRejection', listener: (error: unknown) => void): unknown
}

/** Logs the promises that an author's code leaves to reject by themselves, so that they do not end the process. Gives what undoes it. */
export function surviveRejections(source: RejectionSource, logger: Logger): () => void {
  const listener = (error: unknown) => logger.error('the agent has a promise that rejects and is not awaited', { error })
  source.on('unhandledRejection', listener)
  return () => void source.off('unhandledRejection', listener)
}
