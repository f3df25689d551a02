// The OpenAPI document of an API. It is generated when it is first read: few servers are asked for it.
import type { ServedApi } from '../../../contract/apis.ts'
import { lazy } from '../../../lib/lazy.ts'

export const createOpenApiDocument = (
  api: Extract<ServedApi, { document: object }>,
  baseUrl: string | undefined,
) =>
  lazy(async () => {
    const { describe } = await import('../../../contract/openapi.ts')
    return describe(api, baseUrl ?? '')
  })
