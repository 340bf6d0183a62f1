import type { Output } from '../command.ts'

/** Where a command tells how a task is getting on. */
export interface Reporter {
  /** Tells something that stays to be read. */
  tell(line: string): void
  /** Tells something that counts until the next thing is told. */
  mention(line: string): void
  /** Leaves the output as other commands expect it. May be called twice; `tell` still works after it. */
  end(): void
}

/** Tells everything in lines that stay, as pipes and files want it. */
export function plainReporter(output: Output): Reporter {
  const tell = (line: string) => output.write(`${line}\n`)
  return { tell, mention: tell, end: () => {} }
}
