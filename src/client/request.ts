// Builds an HTTP request from a route of the contract, such as `POST /tokens/{id}`, and an input object.

/**
 * Path parameters are inserted into the path; the rest becomes the query, or the body of a POST. The result's
 * `path` includes the query, and is relative to the URL of the server.
 */
export function buildRequest(route: string, input: object | undefined) {
  const [method = '', pattern = ''] = route.split(' ')
  const fields: Record<string, unknown> = { ...input }
  const path = pattern.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = encodeURIComponent(String(fields[name]))
    delete fields[name]
    return value
  })
  const rest = Object.entries(fields).filter(([, value]) => value !== undefined)
  if (method === 'POST')
    return { method, path, body: rest.length > 0 ? JSON.stringify(Object.fromEntries(rest)) : undefined }
  const query = new URLSearchParams(rest.map(([name, value]) => [name, String(value)]))
  return { method, path: query.size > 0 ? `${path}?${query}` : path, body: undefined }
}
