import { monitorEventLoopDelay } from 'node:perf_hooks'
import { GCProfiler } from 'node:v8'

/** What lets a page into the inspectors of servers. */
export const BENCH_TOKEN = 'bench'

/** What the parent asks a server's process. */
export type Question = 'cpu' | 'allocated' | 'memory' | 'delay'

/** Memory of a server's process after a full garbage collection, in bytes. */
export interface Memory {
  /** The heap, and what lies outside of it for objects on it, such as the bytes of Buffers. */
  readonly heap: number
  readonly rss: number
  /** The most that was ever resident. */
  readonly most: number
}

/** What a server's process tells: its port once it listens, then an answer to each question. */
export interface Told {
  readonly port?: number
  /** CPU time of the process until now, user and system, in microseconds. */
  readonly cpuMicros?: number
  /** Bytes that the process has allocated on its heap until now. */
  readonly allocated?: number
  readonly memory?: Memory
  /** How late the event loop was, of 99 in 100 times, since this was last asked; in milliseconds. */
  readonly delayMs?: number
}

/** Tells the parent the port and answers its questions. The process ends with its parent. */
export function report(port: number): void {
  const tell = (told: Told) => process.send?.(told)
  const answers: Readonly<Record<Question, () => Told>> = {
    cpu: () => ({ cpuMicros: cpuMicros() }),
    allocated: () => ({ allocated: allocated() }),
    memory: () => ({ memory: memory() }),
    delay: () => ({ delayMs: delayMs() })
  }
  process.on('message', (question: Question) => tell(answers[question]()))
  process.on('disconnect', () => process.exit())
  process.on('SIGTERM', () => process.exit())
  tell({ port })
}

/** CPU time of this process until now, user and system, in microseconds. */
export function cpuMicros(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

const delays = monitorEventLoopDelay({ resolution: 1 })

/** The first answer begins the watch. */
function delayMs(): number {
  const late = delays.percentile(99) / 1e6
  delays.enable()
  delays.reset()
  return late
}

let collections = new GCProfiler()
let allocatedUntilNow = 0
/** The size of the heap after the last collection, or at the last answer. */
let heapBefore = process.memoryUsage().heapUsed
collections.start()

/** The growth of the heap between its collections, of whose sizes V8 keeps a record. */
function allocated(): number {
  for (const { beforeGC, afterGC } of collections.stop().statistics) {
    allocatedUntilNow += beforeGC.heapStatistics.usedHeapSize - heapBefore
    heapBefore = afterGC.heapStatistics.usedHeapSize
  }
  const { heapUsed } = process.memoryUsage()
  allocatedUntilNow += heapUsed - heapBefore
  heapBefore = heapUsed
  collections = new GCProfiler()
  collections.start()
  return allocatedUntilNow
}

function memory(): Memory {
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, external, rss } = process.memoryUsage()
  return { heap: heapUsed + external, rss, most: process.resourceUsage().maxRSS * 1024 }
}
