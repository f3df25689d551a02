// Downloads recorded requests as HAR.
import { API, type ListQuery } from '../../../../src/inspector/api.ts'
import { downloadBlob } from '../../download.ts'
import { send } from '../api.ts'

export async function exportHar(query: ListQuery & { ids?: string; reveal: boolean }): Promise<void> {
  const { reveal, ...selection } = query
  const response = await send(API.har, { query: { ...selection, ...(reveal && { reveal }) } })
  const time = new Date().toISOString().slice(0, 19).replaceAll(':', '-')
  downloadBlob(`adit-requests-${time}.har`, await response.blob())
}
