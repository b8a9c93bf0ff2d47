import { mount } from "svelte";
import "../styles/base.css";
import { prefs } from "../lib/prefs.svelte";
import App from "./App.svelte";

prefs.show();
mount(App, { target: document.getElementById("app")! });
