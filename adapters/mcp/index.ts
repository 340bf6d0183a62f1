export { mcpHandler, type McpOptions } from './mcp-handler.ts'
