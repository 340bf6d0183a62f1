import { z } from 'zod'
import {
  accepted,
  defineAgent,
  failed,
  file,
  inputRequired,
  progress,
  reply,
  text,
  type Message,
  type WorkArguments,
  type WorkFunction
} from '../../runtime/index.ts'

type Work = WorkArguments<Input>

/** The arguments that the suite gives to its tools. */
const input = z.object({
  seconds: z.number().optional(),
  label: z.string().optional(),
  name: z.string().optional(),
  filename: z.string().optional()
})
type Input = z.infer<typeof input>

const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==',
  'base64'
)
const picture = () => file(PIXEL, { filename: 'pixel.png', mediaType: 'image/png' })
const sound = () => file(Buffer.from('RIFF'), { filename: 'sound.wav', mediaType: 'audio/wav' })
const page = () => file(Buffer.from('{"a":1}'), { filename: 'a.json', mediaType: 'application/json' })

/** The tools of the conformance suite, by name. */
const TOOLS: Readonly<Record<string, WorkFunction<Input>>> = {
  slow_compute: async ({ input: { seconds = 0, label = '' }, sleep }) => {
    await sleep(seconds * 1000)
    return { artifact: `computed ${label}` }
  },
  failing_job: async ({ sleep }) => {
    await sleep(1000)
    return failed('This job always fails.')
  },
  protocol_error_job: () => {
    throw new Error('A protocol error.')
  },
  confirm_delete: async ({ input: { filename = '' }, ask }) => {
    const { confirm } = await ask(inputRequired(`Delete ${filename}?`, { schema: z.object({ confirm: z.boolean() }) }))
    return { artifact: confirm ? `${filename} is deleted.` : `${filename} stays.` }
  },
  multi_input: async ({ ask }) => {
    const schema = z.object({ name: z.string(), confirm: z.boolean() })
    const first = await ask(inputRequired('The first?', { schema }))
    const second = await ask(inputRequired('The second?', { schema }))
    return { artifact: `${first.name} and ${second.name}` }
  },
  test_tool_with_task: ({ ask }) => askName(ask),
  test_simple_text: () => ({ artifact: 'This is a simple text response for testing.' }),
  test_logging_tool: () => ({ artifact: 'Nothing was logged.' }),
  test_image_content: () => ({ artifact: { parts: [picture()] } }),
  test_audio_content: () => ({ artifact: { parts: [sound()] } }),
  test_embedded_resource: () => ({ artifact: { parts: [page()] } }),
  test_multiple_content_types: () => ({ artifact: { parts: [text('Several:'), picture(), page()] } }),
  test_error_handling: () => failed('This tool intentionally returns an error for testing'),
  test_tool_with_progress: async ({ emit, sleep }) => {
    for (const percent of [0, 50, 100]) {
      emit(progress(`${percent} %`))
      await sleep(50)
    }
    return { artifact: 'done' }
  },
  test_streaming_elicitation: ({ ask }) => askName(ask),
  test_input_required_result_elicitation: ({ ask }) => askName(ask),
  test_input_required_result_request_state: ({ ask }) => confirm(ask),
  test_input_required_result_tampered_state: ({ ask }) => confirm(ask),
  test_input_required_result_capabilities: ({ ask }) => askName(ask),
  test_input_required_result_multi_round: async ({ ask }) => {
    const { name } = await ask(inputRequired('Step 1: What is your name?', { schema: z.object({ name: z.string() }) }))
    const { color } = await ask(
      inputRequired('Step 2: What is your favorite color?', { schema: z.object({ color: z.string() }) })
    )
    return { artifact: `${name}: ${color}` }
  }
}

async function askName(ask: Work['ask']) {
  const { name } = await ask(inputRequired('What is your name?', { schema: z.object({ name: z.string() }) }))
  return { artifact: `Hello, ${name}!` }
}

async function confirm(ask: Work['ask']) {
  await ask(inputRequired('Please confirm', { schema: z.object({ ok: z.boolean() }) }))
  return { artifact: 'state-ok' }
}

/** The name of the tool that was called. */
function toolOf({ metadata }: Message): string {
  return (metadata as { readonly 'urn:taskchart:mcp:1': { readonly tool: string } })['urn:taskchart:mcp:1'].tool
}

/** The argument `name` of a tool. */
function nameIn({ parts: [part] }: Message): string {
  return (part as { readonly data: Input }).data.name ?? ''
}

/** An agent whose skills have the names of the tools that the conformance suite of MCP calls. */
export default defineAgent({
  card: {
    name: 'Conformance',
    skills: ['greet', ...Object.keys(TOOLS)].map(id => ({ id, name: id, description: `The tool ${id}.`, tags: [] }))
  },
  input,
  negotiate: ({ message }) => (toolOf(message) === 'greet' ? reply(`Hello, ${nameIn(message)}!`) : accepted()),
  work: work => TOOLS[toolOf(work.message)]?.(work) ?? failed('There is no such tool.')
})
