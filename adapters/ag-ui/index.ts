export { agUiHandler, type AgUiOptions } from './ag-ui-handler.ts'
