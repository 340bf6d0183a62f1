// What the tests take of the packages beside this file, which are none of the clone's own.
export { AssistantRuntimeProvider } from '@assistant-ui/react'
export {
  useAgUiInterrupts,
  useAgUiRuntime,
  useAgUiState,
  useAgUiSubmitInterruptResponses
} from '@assistant-ui/react-ag-ui'
export { HttpAgent } from '@ag-ui/client'
export { CopilotKitCore, ProxiedCopilotRuntimeAgent } from '@copilotkit/core'
export { CopilotRuntime, InMemoryAgentRunner } from '@copilotkit/runtime/v2'
export { createCopilotNodeListener } from '@copilotkit/runtime/v2/node'
export { createElement } from 'react'
export { createRoot } from 'react-dom/client'
