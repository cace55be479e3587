"""The page: repair, watch, fill, process and likelihood in a browser, on Gradio."""
