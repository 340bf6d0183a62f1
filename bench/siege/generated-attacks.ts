import { frameOf } from '../../test/fixtures/servers/raw-socket.ts'
import * as generated from './generated.ts'
import type { Lane, Attack } from './lane.ts'
import { one } from './task-attacks.ts'
import { textFrame } from './wire.ts'

const AT_ONCE = 60

/** Attacks that fast-check makes of the schemas of the protocol. */
export const generatedAttacks: Readonly<Record<string, Attack>> = {
  'generated frames': lane => generatedFrames(lane, text => textFrame(text)),
  'generated frames, cut and coded oddly': lane => generatedFrames(lane, text => oddFrame(lane, text)),
  'generated requests by JSON-RPC': lane => generatedHttp(lane, () => '/', generated.requests),
  'generated requests by REST': lane => generatedHttp(lane, target => target, generated.bodies)
}

async function generatedFrames(lane: Lane, frame: (text: string) => Buffer): Promise<void> {
  const until = performance.now() + lane.holdMs
  while (!lane.isOver && performance.now() < until) {
    const wire = await lane.webSocket()
    for (const text of generated.made(generated.requests, lane.random.below(2 ** 31), AT_ONCE)) {
      if (lane.isOver || wire.isGone) break
      await wire.write(frame(filled(lane, text)), lane.holdMs)
    }
    await wire.hold(20)
  }
}

async function generatedHttp(
  lane: Lane,
  targetOf: (target: string) => string,
  bodies: typeof generated.bodies
): Promise<void> {
  const until = performance.now() + lane.holdMs
  while (!lane.isOver && performance.now() < until) {
    const seed = lane.random.below(2 ** 31)
    const [targets, headers] = [
      generated.made(generated.targets, seed, AT_ONCE),
      generated.made(generated.headers, seed, AT_ONCE)
    ]
    let wire = await lane.connection()
    for (const [i, body] of generated.made(bodies, seed, AT_ONCE).entries()) {
      if (lane.isOver) break
      if (wire.isGone) wire = await lane.connection()
      const target = filled(lane, targetOf(targets[i] ?? '/')).replaceAll(/[^\x21-\x7e]/g, '%00')
      await wire.write(
        lane.http(
          lane.random.of(['POST', 'POST', 'GET', 'DELETE', 'PUT', 'OPTIONS', 'HEAD']),
          target,
          filled(lane, body),
          headers[i]
        ),
        lane.holdMs
      )
    }
    await wire.hold(20)
  }
}

function filled(lane: Lane, text: string): string {
  return text
    .replaceAll('$TASK', one(lane))
    .replaceAll('$ASKING', lane.prey.asking)
    .replaceAll('$FOREIGN', lane.prey.foreign)
}

/** Most of these end the connection. */
function oddFrame({ random }: Lane, text: string): Buffer {
  const payload = text.slice(0, 2000)
  return frameOf({
    payload,
    opcode: random.of([1, 1, 1, 2, 0, 8, 9, 11]),
    isLast: random.below(4) > 0,
    reserved: random.of([0, 0, 0, 4]),
    isMasked: random.below(10) > 0,
    ...(random.below(10) === 0 && { promised: random.of([0, 5, 2 ** 31, 2 ** 40]) })
  })
}
