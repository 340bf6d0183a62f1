import { relative, resolve } from 'node:path'
import {
  differenceText,
  failsTest,
  historyFiles,
  type HistoryOutcome,
  replayFiles
} from '../../testing/histories/replay-histories.ts'
import { CommandError, EXIT, type Io } from '../command.ts'
import { loadUnlessStopped } from '../load-agent.ts'
import { tapHead, tapPoint } from '../text/format.ts'
import { oneLine, styleText } from '../text/terminal.ts'

/** `taskchart test --histories`: replays stored tasks with an agent. */
export async function testHistories(
  file: string,
  folder: string,
  { strict = false, tap = false }: { readonly strict?: boolean | undefined; readonly tap?: boolean | undefined },
  io: Io
): Promise<number> {
  const { agent } = await loadUnlessStopped(file, io)
  const files = await historyFiles(resolve(io.cwd, folder)).catch((error: TypeError) => {
    throw new CommandError(error.message, { cause: error })
  })
  const counts = new Map<HistoryOutcome, number>()
  let [number, failed] = [0, 0]
  if (tap) io.stdout.write(tapHead(files.length))
  for await (const replay of replayFiles(agent, files)) {
    io.signal.throwIfAborted()
    const fails = failsTest(replay, strict)
    number += 1
    failed += Number(fails)
    counts.set(replay.outcome, (counts.get(replay.outcome) ?? 0) + 1)
    const name = relative(io.cwd, replay.file)
    const text = `${replay.outcome}: ${differenceText(replay)}`
    if (tap)
      io.stdout.write(
        tapPoint(
          { name: replay.outcome === 'same' ? name : `${name}: ${text}`, ...(fails && { failure: text }) },
          number
        )
      )
    else if (replay.outcome !== 'same')
      io.stdout.write(
        `${styleText(io.colours.stdout, fails ? 'red' : 'yellow', `${oneLine(name)}  ${replay.outcome}`)}\n  ${oneLine(differenceText(replay))}\n`
      )
  }
  if (!tap) io.stdout.write(`${styleText(io.colours.stdout, failed === 0 ? 'green' : 'red', summaryOf(counts))}\n`)
  return failed === 0 ? EXIT.ok : EXIT.unsuccessful
}

/** `3 histories: 2 same, 1 diverges`. */
function summaryOf(counts: ReadonlyMap<HistoryOutcome, number>): string {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  return `${total === 1 ? '1 history' : `${total} histories`}: ${Array.from(counts, ([outcome, count]) => `${count} ${outcome}`).join(', ')}`
}
