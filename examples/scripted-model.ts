import { simulateReadableStream, type ModelMessage } from 'ai'
import { MockLanguageModelV3 } from 'ai/test'

type Call = Parameters<MockLanguageModelV3['doStream']>[0]
type Streamed = Awaited<ReturnType<MockLanguageModelV3['doStream']>>['stream']
type Part = Streamed extends ReadableStream<infer Each> ? Each : never

/** The next action of the model: a text, or a call of a tool with an input. */
export type Move = string | { readonly say: string; readonly tool: string; readonly input: unknown }

/** The input of a script: the newest message, its role, and its text or the result of a tool. */
export interface Heard {
  readonly from: ModelMessage['role'] | undefined
  readonly words: string
}

const usage = {
  inputTokens: { total: 12, noCache: 12, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 8, text: 8, reasoning: 0 }
}

/** A model that follows a script, so that an example runs without a key. A real one is `openai('…')`. */
export function scriptedModel(next: (heard: Heard) => Move): MockLanguageModelV3 {
  return new MockLanguageModelV3({
    doStream: async ({ prompt }) => ({
      stream: simulateReadableStream({ chunks: partsOf(next(newest(prompt))), chunkDelayInMs: 10 })
    })
  })
}

function partsOf(move: Move): Part[] {
  const words = typeof move === 'string' ? move : move.say
  return [
    { type: 'text-start', id: 'text' },
    ...words.split(/(?<= )/).map((delta): Part => ({ type: 'text-delta', id: 'text', delta })),
    { type: 'text-end', id: 'text' },
    ...(typeof move === 'string'
      ? []
      : [
          {
            type: 'tool-call',
            toolCallId: 'call',
            toolName: move.tool,
            input: JSON.stringify(move.input)
          } satisfies Part
        ]),
    {
      type: 'finish',
      finishReason: { unified: typeof move === 'string' ? 'stop' : 'tool-calls', raw: undefined },
      usage
    }
  ]
}

function newest(prompt: Call['prompt']): Heard {
  const { role, content } = prompt.at(-1) ?? { role: undefined, content: '' }
  const [part] = content
  if (typeof part !== 'object') return { from: role, words: '' }
  if (part.type === 'tool-result')
    return { from: role, words: part.output.type === 'text' ? part.output.value : part.output.type }
  return { from: role, words: part.type === 'text' ? part.text : '' }
}
