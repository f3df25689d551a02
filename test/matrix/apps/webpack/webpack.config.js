const { ALLOWED_HOST } = process.env

export default {
  mode: 'development',
  devServer: ALLOWED_HOST ? { allowedHosts: [ALLOWED_HOST] } : {},
}
