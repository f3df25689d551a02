require 'action_controller/railtie'

class Site < Rails::Application
  config.load_defaults 6.1
  config.eager_load = false
  config.secret_key_base = 'for tests'
  config.consider_all_requests_local = true
  config.hosts << '.acme.tunnels.example.test' if ENV.key?('BEHIND_TUNNEL')
  config.logger = Logger.new($stdout)
  routes.append do
    root 'forms#show'
    post '/', to: 'forms#create'
  end
end

class FormsController < ActionController::Base
  FORM = <<~HTML
    <%= form_with(url: '/', local: true) do |form| %>
      <%= form.text_field(:name) %> <%= form.button('Send') %>
    <% end %>
  HTML

  def show = render(inline: FORM)

  def create = render(plain: "Hello #{params[:name]}")
end

run Site.initialize!
