import { HttpAgent } from '@copilotkit/react-core/v2'

/** An agent over AG-UI. A page that connects to its thread begins a run without a message, which brings the thread back. */
class TaskAgent extends HttpAgent {
  protected override connect(input: Parameters<HttpAgent['run']>[0]) {
    return this.run({ ...input, messages: [] })
  }
}

const address = new URLSearchParams(location.search)

/** The agents, and what is said to them first. Other addresses: `?barista=http://127.0.0.1:5000/ag-ui`. */
export const AGENTS = {
  barista: { url: address.get('barista') ?? 'http://127.0.0.1:4242/ag-ui', hint: 'a coffee' },
  gardener: { url: address.get('gardener') ?? 'http://127.0.0.1:4243/ag-ui', hint: 'Mow my lawn' }
}

export type AgentName = keyof typeof AGENTS

/** The agents for CopilotKit, which the page calls without a server between. */
export const copilotAgents = Object.fromEntries(
  Object.entries(AGENTS).map(([agentId, { url }]) => [agentId, new TaskAgent({ agentId, url })])
)
