import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** A message that the server's process sends its parent ten times a second. Sizes are bytes. */
export interface Sample {
  /** Whether it was taken right after a garbage collection that was asked for. */
  readonly isCollected: boolean
  /** The heap, and what lies outside of it for objects on it. */
  readonly heap: number
  /** The most that was ever resident. */
  readonly rss: number
  /** The longest time that one turn of the event loop took since the last sample. */
  readonly blockedMs: number
  /** CPU time of the process until now. */
  readonly cpuMs: number
}

const EVERY_MS = 100

/** Loaded into the process of the server with `--import`. */
const delays = monitorEventLoopDelay({ resolution: 5 })
delays.enable()
setInterval(tell, EVERY_MS, false).unref()
process.on('disconnect', () => process.exit())
process.on('message', collectGarbage)

/** Frees what nothing refers to any more, which V8 else does when it needs the memory. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  // V8 frees the Buffers of a collection in the background, and the next collection waits for that.
  collect()
  tell(true)
}

function tell(isCollected: boolean): void {
  const { heapUsed, external } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  process.send?.({
    isCollected,
    heap: heapUsed + external,
    rss: process.resourceUsage().maxRSS * 1024,
    blockedMs: delays.max / 1e6,
    cpuMs: (user + system) / 1000
  } satisfies Sample)
  delays.reset()
}
