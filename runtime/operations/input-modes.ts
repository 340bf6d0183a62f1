import type { AgentCard } from '../../machines/protocol/card.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { Message } from '../../machines/protocol/parts.ts'

/** Media types that an agent takes, out of its card: its own and those of its skills, lower-case, without parameters. */
export function inputModesOf({ defaultInputModes, skills }: Pick<AgentCard, 'defaultInputModes' | 'skills'>): ReadonlySet<string> {
  return new Set([...defaultInputModes, ...skills.flatMap(({ inputModes = [] }) => inputModes)].map(bare))
}

/** Refuses a message with a part of a media type that the agent does not take (§3.1.1). Parts without one pass. */
export function checkInputModes(message: Message, modes: ReadonlySet<string>): void {
  for (const { mediaType } of message.parts) {
    if (mediaType === undefined || accepts(modes, bare(mediaType))) continue
    throw new A2AError('ContentTypeNotSupported', `The agent does not take ${mediaType}. It takes ${[...modes].join(', ')}.`, {
      metadata: { mediaType }
    })
  }
}

function accepts(modes: ReadonlySet<string>, mediaType: string): boolean {
  return modes.has(mediaType) || modes.has('*/*') || modes.has(`${mediaType.split('/')[0]}/*`)
}

function bare(mediaType: string): string {
  return mediaType.replace(/;.*/s, '').trim().toLowerCase()
}
